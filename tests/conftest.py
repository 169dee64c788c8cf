from hypothesis import settings

settings.register_profile("saver", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("saver")
