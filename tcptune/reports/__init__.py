"""Results for readers and other tools: documents, pages, tables, pictures, vendor Rust."""
