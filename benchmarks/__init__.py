"""Times, widths and soundness, measured on the machine at hand."""
