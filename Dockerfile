FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY catalog catalog
COPY migrations migrations
COPY solver solver
COPY service service
RUN python -m venv /opt/clusterwright && /opt/clusterwright/bin/pip install --no-cache-dir .

FROM python:3.12-slim
COPY --from=build /opt/clusterwright /opt/clusterwright
RUN useradd --system --create-home --home-dir /data clusterwright
USER clusterwright
WORKDIR /data
ENV PATH=/opt/clusterwright/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    CLUSTERWRIGHT_DATABASE_URL=sqlite:////data/clusterwright.sqlite
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/readyz', timeout=2)"]
ENTRYPOINT ["clusterwright"]
CMD ["serve", "--host", "0.0.0.0"]
