package provider

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// storedResource is a resource in a state that Terraform wrote with an earlier provider.
type storedResource struct {
	file, typeName string
	version        int64
	attributes     []byte
}

// storedResources reads testdata/states. The files there never change, because people have such
// states. A new resource or attribute gets a file of its own, written by Terraform with the
// provider that has it. A change of what a stored attribute means needs a new version of the
// schema, and an upgrader.
func storedResources(t *testing.T) []storedResource {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "states", "*.tfstate"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no states: %v", err)
	}
	stored := []storedResource{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var state struct {
			Resources []struct {
				Type      string
				Instances []struct {
					Version    int64 `json:"schema_version"`
					Attributes json.RawMessage
				}
			}
		}
		if err := json.Unmarshal(text, &state); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, resource := range state.Resources {
			for _, one := range resource.Instances {
				stored = append(stored,
					storedResource{file, resource.Type, one.Version, one.Attributes})
			}
		}
	}
	return stored
}

// upgraded calls the provider to read a stored state, as Terraform does before anything else.
func (w *walker) upgraded(state storedResource) *tfprotov6.DynamicValue {
	w.t.Helper()
	answer, err := w.server.UpgradeResourceState(w.t.Context(),
		&tfprotov6.UpgradeResourceStateRequest{
			TypeName: state.typeName, Version: state.version,
			RawState: &tfprotov6.RawState{JSON: state.attributes},
		})
	w.must(err, answer.Diagnostics)
	return answer.UpgradedState
}

func TestStatesOfBeforeAreRead(t *testing.T) {
	_, endpoint := newFake(t)
	for _, state := range storedResources(t) {
		walk := newWalker(t, endpoint)
		schema, known := walk.schemas[state.typeName]
		if !known {
			t.Errorf("%s: there is no %s any more", state.file, state.typeName)
			continue
		}
		read := walk.upgraded(state)
		upgraded, err := read.Unmarshal(schema.ValueType())
		if err != nil {
			t.Fatal(err)
		}
		if state.version == schema.Version {
			// The provider ignores attributes that it does not know, which would lose them
			// silently.
			raw := tfprotov6.RawState{JSON: state.attributes}
			whole, err := raw.Unmarshal(schema.ValueType())
			if err != nil {
				t.Errorf("%s: %s: %v", state.file, state.typeName, err)
			} else if !whole.Equal(upgraded) {
				t.Errorf("%s: %s is read as %v", state.file, state.typeName, upgraded)
			}
		}
		answer, err := walk.server.ReadResource(t.Context(), &tfprotov6.ReadResourceRequest{
			TypeName: state.typeName, CurrentState: read,
		})
		noMismatch(t, state.typeName, err, answer.Diagnostics)
	}
}

// Every version of a resource's schema must have a state in testdata, and every attribute that is
// stored a value in one of them: otherwise nothing tests that they can be read.
func TestThereIsAStateOfEverythingThatIsKept(t *testing.T) {
	_, endpoint := newFake(t)
	walk := newWalker(t, endpoint)
	versions := map[string]map[int64]bool{}
	seen := map[string]map[string]bool{}
	for _, state := range storedResources(t) {
		if versions[state.typeName] == nil {
			versions[state.typeName] = map[int64]bool{}
			seen[state.typeName] = map[string]bool{}
		}
		versions[state.typeName][state.version] = true
		value, err := walk.upgraded(state).Unmarshal(walk.schemas[state.typeName].ValueType())
		if err != nil {
			t.Fatal(err)
		}
		attributes := map[string]tftypes.Value{}
		if err := value.As(&attributes); err != nil {
			t.Fatal(err)
		}
		for name, attribute := range attributes {
			seen[state.typeName][name] = seen[state.typeName][name] || !attribute.IsNull()
		}
	}
	for name, schema := range walk.schemas {
		for version := int64(0); version <= schema.Version; version++ {
			if !versions[name][version] {
				t.Errorf("there is no state of %s of version %d", name, version)
			}
		}
		for _, attribute := range schema.Block.Attributes {
			if seen[name][attribute.Name] == attribute.WriteOnly {
				t.Errorf("%s.%s is in a state: %v", name, attribute.Name, seen[name][attribute.Name])
			}
		}
	}
}
