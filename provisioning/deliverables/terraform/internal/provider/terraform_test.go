package provider

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// walker does what Terraform does with a provider in one walk, over the provider protocol, within
// this process. Values are JSON objects; what a configuration leaves out is null.
type walker struct {
	t       *testing.T
	server  tfprotov6.ProviderServer
	schemas map[string]*tfprotov6.Schema
}

type object = map[string]any

func newWalker(t *testing.T, endpoint string) *walker {
	t.Helper()
	w := &walker{t: t, server: providerserver.NewProtocol6(New("test")())()}
	found, err := w.server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	w.schemas = found.ResourceSchemas
	config := w.value(found.Provider, object{"endpoint": endpoint, "api_key": "fk_key"})
	answer, err := w.server.ConfigureProvider(t.Context(),
		&tfprotov6.ConfigureProviderRequest{Config: config})
	w.must(err, answer.Diagnostics)
	return w
}

func (w *walker) must(err error, found []*tfprotov6.Diagnostic) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, each := range found {
		w.t.Fatalf("%s: %s", each.Summary, each.Detail)
	}
}

// value encodes an object, all of its attributes there; nil is no object at all.
func (w *walker) value(schema *tfprotov6.Schema, given object) *tfprotov6.DynamicValue {
	var whole object
	if given != nil {
		whole = object{}
		for _, each := range schema.Block.Attributes {
			whole[each.Name] = nil
		}
		maps.Copy(whole, given)
	}
	encoded, err := json.Marshal(whole)
	if err != nil {
		w.t.Fatal(err)
	}
	return &tfprotov6.DynamicValue{JSON: encoded}
}

// change is what became of a plan: what is planned, and what it said.
type change struct {
	planned  *tfprotov6.DynamicValue
	private  []byte
	replaces bool
	said     []*tfprotov6.Diagnostic
}

// plan asks what a configuration means for a state. nil is nothing: to be made, or to be destroyed.
func (w *walker) plan(name string, state, config object) change {
	w.t.Helper()
	schema := w.schemas[name]
	proposed := object(nil)
	if config != nil {
		proposed = maps.Clone(config)
		for _, each := range schema.Block.Attributes {
			if _, given := config[each.Name]; !given && each.Computed {
				proposed[each.Name] = state[each.Name]
			}
			if each.WriteOnly {
				delete(proposed, each.Name)
			}
		}
	}
	answer, err := w.server.PlanResourceChange(w.t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: name, PriorState: w.value(schema, state),
		ProposedNewState: w.value(schema, proposed), Config: w.value(schema, config),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return change{
		answer.PlannedState, answer.PlannedPrivate, len(answer.RequiresReplace) > 0,
		answer.Diagnostics,
	}
}

// validated asks whether a configuration makes sense.
func (w *walker) validated(name string, config object) []*tfprotov6.Diagnostic {
	w.t.Helper()
	answer, err := w.server.ValidateResourceConfig(w.t.Context(),
		&tfprotov6.ValidateResourceConfigRequest{
			TypeName: name, Config: w.value(w.schemas[name], config),
		})
	if err != nil {
		w.t.Fatal(err)
	}
	return answer.Diagnostics
}

// apply plans a change and makes it; gives the new state and what it said.
func (w *walker) apply(name string, state, config object) (object, []*tfprotov6.Diagnostic) {
	w.t.Helper()
	planned := w.plan(name, state, config)
	if len(planned.said) > 0 {
		return state, planned.said
	}
	schema := w.schemas[name]
	answer, err := w.server.ApplyResourceChange(w.t.Context(),
		&tfprotov6.ApplyResourceChangeRequest{
			TypeName: name, PriorState: w.value(schema, state), PlannedState: planned.planned,
			Config: w.value(schema, config), PlannedPrivate: planned.private,
		})
	if err != nil {
		w.t.Fatal(err)
	}
	return w.shown(name, answer.NewState), answer.Diagnostics
}

// made is apply where it must succeed.
func (w *walker) made(name string, state, config object) object {
	w.t.Helper()
	found, said := w.apply(name, state, config)
	w.must(nil, said)
	return found
}

// read refreshes a state; nil is gone.
func (w *walker) read(name string, state object) object {
	w.t.Helper()
	answer, err := w.server.ReadResource(w.t.Context(), &tfprotov6.ReadResourceRequest{
		TypeName: name, CurrentState: w.value(w.schemas[name], state),
	})
	w.must(err, answer.Diagnostics)
	return w.shown(name, answer.NewState)
}

// imported gives the state that an id stands for.
func (w *walker) imported(name, id string) (object, []*tfprotov6.Diagnostic) {
	w.t.Helper()
	answer, err := w.server.ImportResourceState(w.t.Context(),
		&tfprotov6.ImportResourceStateRequest{TypeName: name, ID: id})
	if err != nil {
		w.t.Fatal(err)
	}
	if len(answer.ImportedResources) == 0 {
		return nil, answer.Diagnostics
	}
	return w.read(name, w.shown(name, answer.ImportedResources[0].State)), nil
}

// shown decodes a state.
func (w *walker) shown(name string, value *tfprotov6.DynamicValue) object {
	w.t.Helper()
	decoded, err := value.Unmarshal(w.schemas[name].ValueType())
	if err != nil {
		w.t.Fatal(err)
	}
	found, _ := plain(w.t, decoded).(object)
	return found
}

// plain turns a value into what JSON has; what is unknown is the text "unknown".
func plain(t *testing.T, value tftypes.Value) any {
	t.Helper()
	if value.IsNull() {
		return nil
	}
	if !value.IsKnown() {
		return "unknown"
	}
	fields, list, text, flag := map[string]tftypes.Value{}, []tftypes.Value{}, "", false
	if value.As(&fields) == nil {
		found := object{}
		for name, each := range fields {
			found[name] = plain(t, each)
		}
		return found
	}
	if value.As(&list) == nil {
		found := []any{}
		for _, each := range list {
			found = append(found, plain(t, each))
		}
		return found
	}
	if value.As(&text) == nil {
		return text
	}
	if value.As(&flag) == nil {
		return flag
	}
	return number(t, value)
}
