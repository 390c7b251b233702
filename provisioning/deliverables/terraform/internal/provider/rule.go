package provider

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	shown "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"freshet/terraform/internal/api"
)

// Alerts and budgets are rules: somebody in the organization names one, the service evaluates it
// again and again, and sends mails. This file has what both have in common: three attributes, the
// calls of the resource, and the data sources of one rule and of all of them.

// ruleFacts are the attributes that every rule has, in its resource and in its data sources.
type ruleFacts struct {
	ID        types.String `tfsdk:"id"`
	Name      types.String `tfsdk:"name"`
	CreatedAt types.String `tfsdk:"created_at"`
}

func ruleFactsOf(id, name, createdAt string) ruleFacts {
	return ruleFacts{types.StringValue(id), types.StringValue(name), types.StringValue(createdAt)}
}

func (f *ruleFacts) ruleID() string { return f.ID.ValueString() }

// ruleAttributes are the attributes of a rule's resource: those of ruleFacts, and its own. The
// example is an id.
func ruleAttributes(
	example string, own map[string]schema.Attribute, validName ...validator.String,
) map[string]schema.Attribute {
	attributes := map[string]schema.Attribute{
		"id": computedText("Id, such as `" + example + "`."),
		"name": schema.StringAttribute{
			Required: true, MarkdownDescription: "Name, as mails show it.", Validators: validName,
		},
		"created_at": computedText("When it was set, RFC 3339."),
	}
	maps.Copy(attributes, own)
	return attributes
}

// shownRuleAttributes are the attributes of a rule in data sources: those of ruleFacts, and its
// own.
func shownRuleAttributes(own map[string]shown.Attribute) map[string]shown.Attribute {
	attributes := map[string]shown.Attribute{
		"id":         shownText("Id."),
		"name":       shownText("Name."),
		"created_at": shownText("When it was set, RFC 3339."),
	}
	maps.Copy(attributes, own)
	return attributes
}

// ruleCalls are what the resource of one kind of rule does with the service. M is its model, T the
// rule as the API has it.
type ruleCalls[M, T any] struct {
	list     func(*session) listed[T]
	create   func(ctx context.Context, client *api.Client, plan *M) (T, error)
	update   func(ctx context.Context, client *api.Client, id string, plan *M) (T, error)
	remove   func(ctx context.Context, client *api.Client, id string) error
	identify func(ctx context.Context, s *session, id string) (map[string]string, error)
}

// ruleModel is a pointer to the model M of a rule T, which fills in all of M from T.
type ruleModel[M, T any] interface {
	*M
	ruleID() string
	show(T)
}

// ruleResource is the resource of one kind of rule. What the service answers is all of the model,
// so create, read and update end in the same way.
func ruleResource[M, T any, P ruleModel[M, T]](
	name string, described schema.Schema, calls ruleCalls[M, T],
) resource.Resource {
	keep := func(s *session, plan *M, rule T) {
		calls.list(s).Put(organization, rule)
		P(plan).show(rule)
	}
	return &managed[M]{
		frame:  frame{name: name},
		schema: described,
		create: func(ctx context.Context, s *session, plan *M, _ M) (bool, error) {
			rule, err := calls.create(ctx, s.api, plan)
			if err != nil {
				return false, err
			}
			keep(s, plan, rule)
			return true, nil
		},
		read: func(ctx context.Context, s *session, state *M) error {
			rule, err := calls.list(s).get(ctx, organization, P(state).ruleID())
			if err == nil {
				P(state).show(rule)
			}
			return err
		},
		update: func(ctx context.Context, s *session, plan *M, state, _ M) error {
			rule, err := calls.update(ctx, s.api, P(&state).ruleID(), plan)
			if err == nil {
				keep(s, plan, rule)
			}
			return err
		},
		remove: func(ctx context.Context, s *session, state M) error {
			id := P(&state).ruleID()
			return calls.list(s).removed(organization, id, calls.remove(ctx, s.api, id))
		},
		identify: calls.identify,
	}
}

// ruleSource is the data source of one rule. find looks up the rule that a configuration names, and
// show turns it into the model S.
func ruleSource[S, T any](
	name, description string, attributes map[string]shown.Attribute,
	find func(ctx context.Context, s *session, model *S) (T, error), show func(T) S,
) datasource.DataSource {
	return newSource(name, description, attributes,
		func(ctx context.Context, s *session, model *S) error {
			rule, err := find(ctx, s, model)
			*model = show(rule)
			return err
		})
}

// rulesSource is the data source of the rules of one kind. choose says which of them a
// configuration asks for, and set puts them into the model L.
func rulesSource[L, S, T any](
	name, description string, attributes map[string]shown.Attribute,
	list func(*session) listed[T], choose func(*L, T) bool, show func(T) S, set func(*L, []S),
) datasource.DataSource {
	return newSource(name, description, attributes,
		func(ctx context.Context, s *session, model *L) error {
			all, err := list(s).All(ctx, organization)
			chosen := func(rule T) bool { return choose(model, rule) }
			set(model, shownAll(all, chosen, show))
			return err
		})
}
