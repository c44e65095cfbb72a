for title, slug in {
    "Hello, World!": "hello-world",
    "  A  --  B ": "a-b",
    "snake_case": "snake-case",
    "Café au lait": "caf-au-lait",
    "": "untitled",
    "!!!": "untitled",
    "C3PO": "c3po",
}.items():
    assert slugify(title) == slug, (title, slugify(title))
