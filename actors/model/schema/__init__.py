"""Input schemas: are they JSON, what does a profile take of them, and what is mended so that it does."""
