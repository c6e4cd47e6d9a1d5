"""The paper's tables and figures: what it reports, the runs that make each here, and the page that compares them."""
