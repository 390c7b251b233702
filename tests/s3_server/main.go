// s3: an S3-compatible server over a folder, for the tests: conditional writes that hold under
// racing writers, multipart uploads, and SlowDown answers beyond a number of requests at once.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:9000", "address to listen on")
	data := flag.String("data", "", "folder with a folder for each bucket")
	requests := flag.Int("requests", 512, "requests at once; more are answered by SlowDown")
	parts := flag.Int("parts", 10000, "parts of a multipart upload at most")
	flag.Parse()

	// An object's ETag and headers lie in extended attributes of its file.
	store, err := posix.New(*data, meta.XattrMeta{}, posix.PosixOpts{CopyObjectThreshold: 5 << 30})
	if err != nil {
		log.Fatal(err)
	}
	until, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	err = embedgw.RunVersityGW(until, store, &embedgw.Config{
		RootUserAccess:    os.Getenv("AWS_ACCESS_KEY_ID"),
		RootUserSecret:    os.Getenv("AWS_SECRET_ACCESS_KEY"),
		Ports:             []string{*listen},
		MaxConnections:    4096,
		MaxRequests:       *requests,
		MultipartMaxParts: *parts,
		HealthPath:        "/healthz",
		KeepAlive:         true,
		Quiet:             true,
	})
	if err != nil && until.Err() == nil {
		log.Fatal(err)
	}
}
