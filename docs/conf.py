"""How Sphinx builds the site: `make site`, without a network, and every warning is an error."""

import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.domains.python import PyXRefRole

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))

import reference  # noqa: E402

import safecal  # noqa: E402

project = "safecal"
author = "The safecal developers"
project_copyright = author
version = release = safecal.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_*", "gallery/**/*.ipynb", "gallery/**/*.py"]
nitpicky = True
smartquotes = False  # `--prob` has two hyphens

# Markdown as GitHub reads it: the same file is right in both places.
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 4

# The reference is made of docstrings; `name` in single backticks is a link where there is such a name.
default_role = "name"
autodoc_mock_imports = reference.MOCKED
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
numpydoc_show_class_members = False
python_maximum_signature_line_length = 88
add_module_names = False
# Types of other libraries stand in signatures, and there is no network to look for their pages.
nitpick_ignore_regex = [("py:.*", r"(?!safecal\.).*")]

sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"\.py$",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_signature": False,
    "write_computation_times": False,
    "within_subsection_order": "FileNameSortKey",
}

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos, .gp, .go"

html_theme = "pydata_sphinx_theme"
html_title = "safecal"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_math_renderer = "mathml"
html_sidebars = {"index": []}
html_context = {"default_mode": "auto"}  # light or dark as the reader's system is
html_theme_options = {
    "logo": {"text": "safecal"},
    "collapse_navigation": True,  # a page of the reference would list all others
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "show_toc_level": 2,
    "use_edit_page_button": False,
}


class Name(PyXRefRole):
    """A name in a docstring: a link where it has a page, and plain code elsewhere."""

    def process_link(self, env, refnode, has_explicit_title, title, target):  # type: ignore[no-untyped-def]
        """Look for the name where Python would, and remember that it need not exist."""
        refnode["refdomain"], refnode["reftype"], refnode["may_be_code"] = "py", "obj", True
        return super().process_link(env, refnode, has_explicit_title, title, target)


def plain_code(app: Sphinx, env: object, node: nodes.Element, content: nodes.TextElement) -> nodes.Node | None:
    """Return the text of a name that has no page: not every class that a signature names is public."""
    inner = node["reftype"] == "class" and reference.exists(node["reftarget"])
    return content if node.get("may_be_code") or inner else None


def for_everybody(app: Sphinx, name: str, template: str, context: dict[str, Any], tree: object) -> None:
    """Say to a screen reader what the theme and Sphinx only show."""
    sidebar = context["generate_toctree_html"]
    words = '<summary aria-label="Pages below">'
    context["generate_toctree_html"] = lambda *a, **k: str(sidebar(*a, **k)).replace("<summary>", words)
    if "body" in context:  # the parameters of a long signature are written as definitions of nothing
        context["body"] = re.sub(r"<dl>(?=\s*<dd>)", '<dl role="presentation">', context["body"])


def formula(writer: object, node: nodes.Element) -> None:
    """Write a formula as MathML, which browsers draw by themselves."""
    block = isinstance(node, nodes.math_block)
    written = tex2mathml(node.astext(), as_block=block)
    writer.body.append(f'<div class="math" tabindex="0">{written}</div>' if block else written)  # type: ignore[attr-defined]
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Add what Sphinx does not bring: the reference, names, and formulas without a script."""
    app.add_role("name", Name())
    app.add_html_math_renderer("mathml", inline_renderers=(formula, None), block_renderers=(formula, None))
    app.connect("config-inited", lambda app, config: reference.write(HERE / "reference"))
    app.connect("html-page-context", for_everybody, priority=1000)  # after the theme
    app.connect("missing-reference", plain_code)
