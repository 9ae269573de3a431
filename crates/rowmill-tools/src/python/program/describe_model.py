"""Tells the schema of the user's pydantic model, or what is wrong with its name.

Standard output gets the schema, and a second line with a digest of the code that checks answers where
the model can check any. With status 3 it gets what is wrong instead, and a second line with what helps.
"""

import difflib, hashlib, importlib, json, sys

spec = sys.argv[1]
sys.path.insert(0, "")
told, sys.stdout = sys.stdout, sys.stderr


def stop(text, help=""):
    print(" ".join(text.split()), help, sep="\n", file=told, flush=True)
    sys.exit(3)


def is_model(found):
    return isinstance(found, type) and hasattr(found, "model_json_schema")


def meant(found, wrong, before):
    """What helps whoever named something that is not there."""
    models = [name for name in dir(found) if is_model(getattr(found, name, None)) and name != "BaseModel"]
    close = difflib.get_close_matches(wrong, models, n=1) or [name for name in models if name.lower() == wrong.lower()]
    if close:
        return f"did you mean `{before}{close[0]}`?"
    if models:
        names = ", ".join(f"`{before}{name}`" for name in models[:8])
        return f"it has these models: {names}"
    return f"define a pydantic model `{wrong}` there, or use the module that has it"


module_name, _, path = spec.partition(":")
try:
    found = importlib.import_module(module_name)
except Exception as error:
    stop(f"could not import schema model module {module_name}: {error}")
before = module_name + ":"
for part in path.split("."):
    if not hasattr(found, part):
        stop(f"could not resolve schema model {spec}: missing {part}", meant(found, part, before))
    found = getattr(found, part)
    before += part + "."
if not is_model(found):
    stop(f"schema model {spec} must point to a pydantic BaseModel subclass")
print(json.dumps(found.model_json_schema()), file=told)
if hasattr(found, "model_validate_json") and hasattr(found, "model_dump_json"):
    code = b""
    for part in found.__mro__:
        file = getattr(sys.modules.get(part.__module__), "__file__", None)
        if file and file.endswith(".py") and "site-packages" not in file and not part.__module__.startswith("pydantic"):
            with open(file, "rb") as source:
                code += source.read()
    print(hashlib.sha256(code).hexdigest(), file=told)
