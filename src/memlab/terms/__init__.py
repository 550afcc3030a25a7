"""One module per memory term, one chapter each: plain functions, numbers in, whole bytes out."""
