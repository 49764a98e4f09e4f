"""How Sphinx builds these pages; ``make docs`` runs it with warnings as errors."""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "hockeystick"
author = "The hockeystick authors"
project_copyright = author
version = release = installed_version("hockeystick")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "generated",
    "docstrings",
]
exclude_patterns = ["_build", "_ext"]

html_theme = "furo"
html_title = "hockeystick"
html_static_path = ["_static"]
html_css_files = ["hockeystick.css"]
html_show_sourcelink = False
html_copy_source = False

myst_enable_extensions = ["deflist", "fieldlist"]
myst_heading_anchors = 3

napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_custom_sections = ["Guarantees", "Edge cases"]

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_class_signature = "mixed"
# These adapters are described without the large libraries that they plug into.
autodoc_mock_imports = ["flwr", "opacus", "optuna", "ray", "torch", "transformers"]
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 72

# Two hyphens are a dash; quotation marks stay as they are.
smartquotes_action = "D"

pygments_style = "default"
pygments_dark_style = "github-dark"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
