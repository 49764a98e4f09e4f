"""The benchmark report: what is asked, measured, drawn and written."""
