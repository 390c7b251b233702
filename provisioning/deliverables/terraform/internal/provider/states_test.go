package provider

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// kept is one thing in a state that Terraform wrote with a provider of before.
type kept struct {
	file, typeName string
	version        int64
	attributes     []byte
}

// keptStates reads testdata/states. What is there stays as it is: people have such files. A new
// resource or attribute gets a file of its own, written by Terraform with the provider that has it;
// a change of what a stored attribute means gets a new version of the schema, and an upgrader.
func keptStates(t *testing.T) []kept {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "states", "*.tfstate"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no states: %v", err)
	}
	found := []kept{}
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
		for _, each := range state.Resources {
			for _, one := range each.Instances {
				found = append(found, kept{file, each.Type, one.Version, one.Attributes})
			}
		}
	}
	return found
}

// upgraded has the provider read a state, as Terraform does before anything else.
func (w *walker) upgraded(state kept) *tfprotov6.DynamicValue {
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
	for _, state := range keptStates(t) {
		walk := newWalker(t, endpoint)
		schema, known := walk.schemas[state.typeName]
		if !known {
			t.Errorf("%s: there is no %s any more", state.file, state.typeName)
			continue
		}
		read := walk.upgraded(state)
		found, err := read.Unmarshal(schema.ValueType())
		if err != nil {
			t.Fatal(err)
		}
		if state.version == schema.Version {
			// The provider reads over what it does not know; nothing may be lost without an upgrade.
			raw := tfprotov6.RawState{JSON: state.attributes}
			whole, err := raw.Unmarshal(schema.ValueType())
			if err != nil {
				t.Errorf("%s: %s: %v", state.file, state.typeName, err)
			} else if !whole.Equal(found) {
				t.Errorf("%s: %s is read as %v", state.file, state.typeName, found)
			}
		}
		answer, err := walk.server.ReadResource(t.Context(), &tfprotov6.ReadResourceRequest{
			TypeName: state.typeName, CurrentState: read,
		})
		noMismatch(t, state.typeName, err, answer.Diagnostics)
	}
}

// Of each version of a resource's schema there is a state, and each attribute that is kept is in
// one of them, with a value: what is never tried may not be readable.
func TestThereIsAStateOfEverythingThatIsKept(t *testing.T) {
	_, endpoint := newFake(t)
	walk := newWalker(t, endpoint)
	versions := map[string]map[int64]bool{}
	seen := map[string]map[string]bool{}
	for _, state := range keptStates(t) {
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
		for name, each := range attributes {
			seen[state.typeName][name] = seen[state.typeName][name] || !each.IsNull()
		}
	}
	for name, schema := range walk.schemas {
		for version := int64(0); version <= schema.Version; version++ {
			if !versions[name][version] {
				t.Errorf("there is no state of %s of version %d", name, version)
			}
		}
		for _, each := range schema.Block.Attributes {
			if seen[name][each.Name] == each.WriteOnly {
				t.Errorf("%s.%s is in a state: %v", name, each.Name, seen[name][each.Name])
			}
		}
	}
}
