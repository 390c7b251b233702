package provider

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	shown "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// Sets of texts, and texts that have one way to be written: the service keeps them so, and what a
// configuration gives must be what comes back.

// shownTexts is a set of texts that a data source shows.
func shownTexts(description string) shown.SetAttribute {
	return shown.SetAttribute{
		Computed: true, ElementType: types.StringType, MarkdownDescription: description,
	}
}

func textSetOf(texts []string) types.Set {
	return setOf(types.StringType, texts, types.StringValue)
}

func textsIn(set types.Set) []string {
	return itemsIn(set, types.String.ValueString)
}

// setOf is a set of items that value makes values of kind of.
func setOf[T any, V attr.Value](kind attr.Type, items []T, value func(T) V) types.Set {
	values := make([]attr.Value, len(items))
	for i, each := range items {
		values[i] = value(each)
	}
	return types.SetValueMust(kind, values)
}

// itemsIn is what a set of values V holds.
func itemsIn[T any, V attr.Value](set types.Set, item func(V) T) []T {
	found := make([]T, 0, len(set.Elements()))
	for _, each := range set.Elements() {
		if value, ok := each.(V); ok {
			found = append(found, item(value))
		}
	}
	return found
}

// writtenAs takes texts that are as the service keeps them. kept gives that way of writing.
type writtenAs struct {
	what string
	kept func(string) (string, error)
}

var _ validator.String = writtenAs{}

func (v writtenAs) Description(context.Context) string { return v.what }

func (v writtenAs) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (v writtenAs) ValidateString(
	_ context.Context, request validator.StringRequest, answer *validator.StringResponse,
) {
	if request.ConfigValue.IsNull() || request.ConfigValue.IsUnknown() {
		return
	}
	text := request.ConfigValue.ValueString()
	kept, err := v.kept(text)
	switch {
	case err != nil:
		answer.Diagnostics.AddAttributeError(request.Path, "It is not "+v.what, err.Error())
	case kept != text:
		answer.Diagnostics.AddAttributeError(request.Path, "It is not "+v.what,
			fmt.Sprintf("%q is kept as %q: write it so.", text, kept))
	}
}

// mailAddress is one in lower case.
func mailAddress() validator.String {
	return writtenAs{"a mail address in lower case", func(text string) (string, error) {
		name, domain, cut := strings.Cut(text, "@")
		if !cut || name == "" || domain == "" {
			return "", fmt.Errorf("%q has no name, @ and domain", text)
		}
		return strings.ToLower(strings.TrimSpace(text)), nil
	}}
}

// network is one in CIDR notation (RFC 4632, 5952), with no bits behind its prefix.
func network() validator.String {
	return writtenAs{"a network in CIDR notation", func(text string) (string, error) {
		found, err := netip.ParsePrefix(text)
		if single, alone := netip.ParseAddr(text); alone == nil {
			found, err = single.WithZone("").Prefix(single.BitLen())
		}
		if err != nil {
			return "", err
		}
		if found.Addr().Is4In6() {
			return "", fmt.Errorf("%q holds addresses of IPv4: write them as such", text)
		}
		return found.Masked().String(), nil
	}}
}
