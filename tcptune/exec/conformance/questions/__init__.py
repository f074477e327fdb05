"""Answers to `cost` and `table` questions, one module or package a chapter; importing it registers its handlers."""
