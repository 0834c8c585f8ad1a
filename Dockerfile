# ragfilter with its page, its command line and its service. The workspace is the volume /data.
FROM python:3.13-slim-bookworm

# Beside PyPI: the CPU build of torch, since the default one brings gigabytes of CUDA.
ENV PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu \
    PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PYTHONUNBUFFERED=1

WORKDIR /src
COPY requirements.txt ./
RUN pip install -r requirements.txt
COPY pyproject.toml setup.py MANIFEST.in README.md LICENSE ./
COPY ragfilter ragfilter
# hadolint ignore=DL3013
RUN pip install ".[app,serve,otel,postgres]" \
    && useradd --uid 1000 --create-home ragfilter \
    && install --directory --owner=ragfilter /data

USER 1000
WORKDIR /home/ragfilter
ENV RAGFILTER_WORKSPACE=/data
VOLUME /data
EXPOSE 8000 8501
ENTRYPOINT ["ragfilter"]
CMD ["--help"]
