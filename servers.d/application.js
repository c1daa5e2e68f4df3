// Like applications.py: serves files of a directory and echoes posted data. `node application.js PORT FOLDER`
const [port, site] = process.argv.slice(2), fs = require("fs"), path = require("path");
require("http").createServer((request, response) => {
    if (request.method === "POST") return request.pipe(response);
    const file = fs.createReadStream(path.join(site, path.basename(request.url)));
    file.on("error", () => response.writeHead(404).end());
    file.on("open", () => file.pipe(response));
}).listen(port, "0.0.0.0");
