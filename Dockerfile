# The command `saver` with everything compiled:
#
#     docker build -t saver .
#     docker run --rm saver diagnose bandit
#
# Debian's, because numba has no wheels for musl. Compiled code is for the kind of processor on which the image is
# built: build it on the kind that will run it. On another kind it still works, and compiles again when first called.
FROM python:3.12-slim-trixie

WORKDIR /opt/saver
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
COPY audit ./audit
RUN pip install --no-cache-dir .

# What is compiled here belongs to root, whom every user trusts; what is compiled later is added beside it.
ENV NUMBA_CACHE_DIR=/var/cache/saver
RUN saver warm && chmod 1777 /var/cache/saver/saver-rl/code

RUN useradd --create-home --uid 10001 saver
USER 10001
WORKDIR /home/saver
ENTRYPOINT ["saver"]
CMD ["--help"]
