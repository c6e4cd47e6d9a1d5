"""A run as one page that people can read: `page.render` turns a `content.Report`, which is plain data, into HTML."""
