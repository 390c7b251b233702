// kube: the servers of Kubernetes in one binary; its name or its first argument chooses among them.
// One binary is linked once: four of them take four times the room and a minute more.
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// Made only when chosen: each registers flags and feature gates of the whole process.
var servers = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllers.NewControllerManagerCommand,
	"kube-scheduler":          newScheduler,
	"kubelet":                 newKubelet,
}

func newScheduler() *cobra.Command { return scheduler.NewSchedulerCommand() }

func newKubelet() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }

func main() {
	name := filepath.Base(os.Args[0])
	if servers[name] == nil && len(os.Args) > 1 {
		name = os.Args[1]
		os.Args = slices.Delete(os.Args, 0, 1)
	}
	server := servers[name]
	if server == nil {
		names := strings.Join(slices.Sorted(maps.Keys(servers)), "|")
		fmt.Fprintf(os.Stderr, "usage: kube %s [flag...]\n", names)
		os.Exit(2)
	}
	os.Exit(cli.Run(server()))
}
