package provider

import (
	"os"
	"strings"
	"testing"
)

// withoutLogs unsets the log variables of the environment until the test ends.
func withoutLogs(t *testing.T) {
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, logPrefix) {
			t.Setenv(name, "")
			if err := os.Unsetenv(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Setenv(frameworkLevel, "")
	if err := os.Unsetenv(frameworkLevel); err != nil {
		t.Fatal(err)
	}
}

func TestTracesAreWrittenOnlyForWhoAsksForThem(t *testing.T) {
	for asked, expected := range map[string]string{
		"": "warn", "TF_LOG": "", "TF_LOG_PROVIDER": "", "TF_LOG_SDK_PROTO": "",
	} {
		t.Run(asked, func(t *testing.T) {
			withoutLogs(t)
			if asked != "" {
				t.Setenv(asked, "debug")
			}
			if err := Quiet(); err != nil {
				t.Fatal(err)
			}
			if level := os.Getenv(frameworkLevel); level != expected {
				t.Errorf("is %q, not %q", level, expected)
			}
		})
	}
}
