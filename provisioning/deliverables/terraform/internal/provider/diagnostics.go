package provider

import (
	"errors"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"freshet/terraform/internal/api"
)

// report puts an error into diagnostics, at the attributes that the service's problem points to.
// What it points to in one of several items of a batch is meant of this one.
func report(to *diag.Diagnostics, what string, err error, attributes map[string]attr.Value) {
	if err == nil {
		return
	}
	var problem *api.Problem
	if errors.As(err, &problem) {
		placed := 0
		for _, each := range problem.Errors {
			if place, known := placeOf(each.Pointer, attributes); known {
				to.AddAttributeError(place, what, each.Detail+"\n\n"+err.Error())
				placed++
			}
		}
		if placed > 0 {
			return
		}
	}
	to.AddError(what, err.Error())
}

// placeOf turns a JSON pointer into the path of an attribute. The API's members have the names of
// our attributes; a member below an attribute that is a map is one of its keys.
func placeOf(pointer string, attributes map[string]attr.Value) (path.Path, bool) {
	parts := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	if len(parts) > 2 && parts[0] == "items" {
		parts = parts[2:]
	}
	value, known := attributes[unescape(parts[0])]
	if !known {
		return path.Empty(), false
	}
	place := path.Root(unescape(parts[0]))
	if mapping, isMap := value.(interface{ Elements() map[string]attr.Value }); isMap &&
		len(parts) > 1 {
		key := unescape(strings.Join(parts[1:], "/"))
		if _, there := mapping.Elements()[key]; there {
			place = place.AtMapKey(key)
		}
	}
	return place, true
}

// unescape reads a part of a JSON pointer (RFC 6901).
func unescape(part string) string {
	return strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
}
