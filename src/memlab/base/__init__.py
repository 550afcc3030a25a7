"""Small tools that every room needs: frozen values, tables of text, the words of a language."""
