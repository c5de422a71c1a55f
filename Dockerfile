# The base image by digest where one is known to you: docker build --build-arg PYTHON_IMAGE=python:3.12-slim@sha256:… (the digest
# that `docker buildx imagetools inspect python:3.12-slim` shows); see docs/security.md.
ARG PYTHON_IMAGE=python:3.12-slim

FROM ${PYTHON_IMAGE} AS build
WORKDIR /src
# What uv.lock locks, each file checked against its hash; the build backend too.
COPY requirements requirements
RUN python -m venv /opt/build && /opt/build/bin/pip install --no-cache-dir --require-hashes -r requirements/build.txt
RUN python -m venv /opt/clusterwright \
    && /opt/clusterwright/bin/pip install --no-cache-dir --require-hashes -r requirements/service.txt
COPY pyproject.toml README.md LICENSE ./
COPY catalog catalog
COPY migrations migrations
COPY solver solver
COPY service service
RUN /opt/build/bin/pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels . \
    && /opt/clusterwright/bin/pip install --no-cache-dir --no-deps --no-index /wheels/*.whl

FROM ${PYTHON_IMAGE}
COPY --from=build /opt/clusterwright /opt/clusterwright
RUN useradd --system --create-home --home-dir /data clusterwright \
    && install --directory --owner clusterwright /var/cache/clusterwright
USER clusterwright
WORKDIR /data
# The simulation is compiled into the image, for any processor of the architecture rather than for the one that builds it.
ENV PATH=/opt/clusterwright/bin:$PATH \
    NUMBA_CACHE_DIR=/var/cache/clusterwright \
    NUMBA_CPU_NAME=generic \
    PYTHONUNBUFFERED=1 \
    CLUSTERWRIGHT_DATABASE_URL=sqlite:////data/clusterwright.sqlite
RUN python -m solver.engine.compile
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/readyz', timeout=2)"]
ENTRYPOINT ["clusterwright"]
CMD ["serve", "--host", "0.0.0.0"]
