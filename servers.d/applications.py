"""The same application for several Python servers. It serves files of the directory $SITE and echoes posted data.

    applications.py aiohttp|tornado|twisted PORT
"""

import os
import sys

SITE = os.environ["SITE"]


def content(path):
    with open(os.path.join(SITE, os.path.basename(path)), "rb") as file:
        return file.read()


def wsgi(environment, start):
    if environment["REQUEST_METHOD"] == "POST":
        body = environment["wsgi.input"].read(int(environment["CONTENT_LENGTH"]))
    else:
        body = content(environment["PATH_INFO"])
    start("200 OK", [("Content-Length", str(len(body)))])
    return [body]


async def asgi(scope, receive, send):
    if scope["type"] != "http":
        return
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    if scope["method"] == "GET":
        body = content(scope["path"])
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", str(len(body)).encode())]})
    await send({"type": "http.response.body", "body": body})


def aiohttp(port):
    from aiohttp import web

    async def get(request):
        return web.FileResponse(os.path.join(SITE, request.match_info["name"]))

    async def post(request):
        return web.Response(body=await request.read())

    application = web.Application(client_max_size=1 << 24)
    application.add_routes([web.get("/{name}", get), web.post("/", post)])
    web.run_app(application, host="0.0.0.0", port=port, print=None)


def tornado(port):
    import asyncio

    import tornado.web

    class Handler(tornado.web.RequestHandler):
        def get(self, name):
            self.write(content(name))

        def post(self, _):
            self.write(self.request.body)

    async def serve():
        tornado.web.Application([("/(.*)", Handler)]).listen(port)
        await asyncio.Event().wait()

    asyncio.run(serve())


def twisted(port):
    from twisted.internet import reactor
    from twisted.web import resource, server, static

    class Echo(resource.Resource):
        isLeaf = True

        def render_POST(self, request):
            return request.content.read()

    root = static.File(SITE)
    root.putChild(b"", Echo())
    reactor.listenTCP(port, server.Site(root))
    reactor.run()


if __name__ == "__main__":
    globals()[sys.argv[1]](int(sys.argv[2]))
