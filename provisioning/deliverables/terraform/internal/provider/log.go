package provider

import (
	"os"
	"strings"
)

const (
	// Terraform's own variables of logs begin with it, those of its parts too (TF_LOG_PROVIDER).
	logPrefix = "TF_LOG"
	// frameworkLevel is of all that the framework logs of calls to the provider.
	frameworkLevel = "TF_LOG_SDK"
)

// Quiet has the framework keep its traces to itself, unless somebody asked for a log. Without it
// every call writes dozens of lines for Terraform to read and throw away: half of a plan's time.
func Quiet() error {
	for _, each := range os.Environ() {
		if strings.HasPrefix(each, logPrefix) {
			return nil
		}
	}
	return os.Setenv(frameworkLevel, "warn")
}
