# Like applications.py: serves files of the directory $SITE and echoes posted data.
run lambda { |environment|
  posted = environment["REQUEST_METHOD"] == "POST"
  body = posted ? environment["rack.input"].read : File.binread(File.join(ENV["SITE"], File.basename(environment["PATH_INFO"])))
  [200, { "Content-Length" => body.bytesize.to_s, "Content-Type" => "application/octet-stream" }, [body]]
}
