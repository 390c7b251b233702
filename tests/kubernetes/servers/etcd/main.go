// etcd: the server itself, which cannot be installed by name because its module has replacements.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
