"""The page's parts, one module a table or figure: from the runs' records to markdown and pictures."""
