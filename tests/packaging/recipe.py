# SPDX-License-Identifier: Apache-2.0
"""recipe.py VERSION - rattler-build itself reads and renders the recipe for conda, and it is of this version."""
import sys

from rattler_build import Stage0Recipe, VariantConfig

recipe = Stage0Recipe.from_file("packaging/conda/recipe.yaml")
rendered = [v.recipe for v in recipe.render(VariantConfig.from_file("packaging/conda/variants.yaml"))]
assert len(rendered) == 1, rendered
assert (str(rendered[0].package.name), str(rendered[0].package.version)) == ("vramcast", sys.argv[1]), rendered[0].package
