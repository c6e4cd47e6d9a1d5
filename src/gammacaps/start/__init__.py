"""`gammacaps start FOLDER`: from a folder of pictures to two networks and a page that compares them."""
