# Two stages: what builds stays behind. The image holds the application, its pinned packages and nothing else
# to run; it needs no rights and no writable files but /data and /tmp.
FROM python:3.13-slim-bookworm AS build
RUN python -m venv /opt/peerpath
COPY requirements.txt /tmp/
RUN /opt/peerpath/bin/pip install --no-cache-dir --disable-pip-version-check \
    -r /tmp/requirements.txt

FROM python:3.13-slim-bookworm
# A group of that number too: without one Celery takes it for root's.
RUN groupadd --gid 10001 peerpath \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin peerpath \
    && install -d -o peerpath -g peerpath -m 700 /data
COPY --from=build /opt/peerpath /opt/peerpath
COPY . /app
# Bytecode now: the root file system is read-only later.
RUN /opt/peerpath/bin/python -m compileall -q /app
# One pool of memory for all threads: with one each, and caches of their own, a process grows for hours.
ENV MALLOC_ARENA_MAX=1 GLIBC_TUNABLES=glibc.malloc.tcache_count=0
# Whatever number an engine runs it as: SSH asks for a name.
ENV USER=peerpath
ENV PATH=/opt/peerpath/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PEERPATH_DATA=/data
WORKDIR /app
USER 10001:10001
VOLUME /data
EXPOSE 8000
CMD ["python", "manage.py", "serve", "--host", "0.0.0.0", "--port", "8000"]
