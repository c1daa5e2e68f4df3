# As applications.py: files of the folder $SITE, and what is posted comes back.
run lambda { |environment|
  posted = environment["REQUEST_METHOD"] == "POST"
  body = posted ? environment["rack.input"].read : File.binread(File.join(ENV["SITE"], File.basename(environment["PATH_INFO"])))
  [200, { "Content-Length" => body.bytesize.to_s, "Content-Type" => "application/octet-stream" }, [body]]
}
