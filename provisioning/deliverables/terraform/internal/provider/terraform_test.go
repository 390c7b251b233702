package provider

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// walker makes the calls that Terraform makes to a provider in one walk, over the provider protocol
// and within this process. Values are JSON objects; attributes that a configuration leaves out are
// null.
type walker struct {
	t       *testing.T
	server  tfprotov6.ProviderServer
	schemas map[string]*tfprotov6.Schema
}

type object = map[string]any

func newWalker(t *testing.T, endpoint string) *walker {
	t.Helper()
	w := &walker{t: t, server: providerserver.NewProtocol6(New("test")())()}
	schemas, err := w.server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	w.schemas = schemas.ResourceSchemas
	config := w.value(schemas.Provider, object{"endpoint": endpoint, "api_key": "fk_key"})
	answer, err := w.server.ConfigureProvider(t.Context(),
		&tfprotov6.ConfigureProviderRequest{Config: config})
	w.must(err, answer.Diagnostics)
	return w
}

func (w *walker) must(err error, diagnostics []*tfprotov6.Diagnostic) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, diagnostic := range diagnostics {
		w.t.Fatalf("%s: %s", diagnostic.Summary, diagnostic.Detail)
	}
}

// value encodes an object with all attributes of a schema, those that it lacks as null. nil is
// null.
func (w *walker) value(schema *tfprotov6.Schema, values object) *tfprotov6.DynamicValue {
	var whole object
	if values != nil {
		whole = object{}
		for _, attribute := range schema.Block.Attributes {
			whole[attribute.Name] = nil
		}
		maps.Copy(whole, values)
	}
	encoded, err := json.Marshal(whole)
	if err != nil {
		w.t.Fatal(err)
	}
	return &tfprotov6.DynamicValue{JSON: encoded}
}

// change is the result of a plan: the planned state and the diagnostics.
type change struct {
	planned  *tfprotov6.DynamicValue
	private  []byte
	replaces bool
	said     []*tfprotov6.Diagnostic
}

// plan asks the provider for the change from a state to a configuration. A nil state means that the
// resource is to be created, a nil configuration that it is to be destroyed.
func (w *walker) plan(name string, state, config object) change {
	w.t.Helper()
	schema := w.schemas[name]
	proposed := object(nil)
	if config != nil {
		proposed = maps.Clone(config)
		for _, attribute := range schema.Block.Attributes {
			if _, set := config[attribute.Name]; !set && attribute.Computed {
				proposed[attribute.Name] = state[attribute.Name]
			}
			if attribute.WriteOnly {
				delete(proposed, attribute.Name)
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

// validated returns the diagnostics of a configuration's validation.
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

// apply plans a change and makes it. It returns the new state and the diagnostics.
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

// made is apply for a change that must succeed; it returns the new state.
func (w *walker) made(name string, state, config object) object {
	w.t.Helper()
	after, said := w.apply(name, state, config)
	w.must(nil, said)
	return after
}

// read refreshes a state. nil means that the resource does not exist any more.
func (w *walker) read(name string, state object) object {
	w.t.Helper()
	answer, err := w.server.ReadResource(w.t.Context(), &tfprotov6.ReadResourceRequest{
		TypeName: name, CurrentState: w.value(w.schemas[name], state),
	})
	w.must(err, answer.Diagnostics)
	return w.shown(name, answer.NewState)
}

// imported returns the state of the resource that an import id names, and the diagnostics.
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

// shown decodes a state into an object.
func (w *walker) shown(name string, value *tfprotov6.DynamicValue) object {
	w.t.Helper()
	decoded, err := value.Unmarshal(w.schemas[name].ValueType())
	if err != nil {
		w.t.Fatal(err)
	}
	state, _ := plain(w.t, decoded).(object)
	return state
}

// plain turns a value into JSON's types. An unknown value becomes the text "unknown".
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
		values := object{}
		for name, field := range fields {
			values[name] = plain(t, field)
		}
		return values
	}
	if value.As(&list) == nil {
		values := []any{}
		for _, item := range list {
			values = append(values, plain(t, item))
		}
		return values
	}
	if value.As(&text) == nil {
		return text
	}
	if value.As(&flag) == nil {
		return flag
	}
	return number(t, value)
}
