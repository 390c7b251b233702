package provider

import (
	"errors"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"freshet/terraform/internal/api"
)

func FuzzACLKeysAreReadAsTheyWereWritten(f *testing.F) {
	f.Add("User:cred_a", "topic-*", "*")
	f.Add("User:a/b c%2F", "ä|#?", "::1")
	f.Fuzz(func(t *testing.T, principal, name, host string) {
		entry := api.NewACL{
			Principal: principal, ResourceType: "TOPIC", ResourceName: name,
			PatternType: "LITERAL", Operation: "READ", Permission: "ALLOW", Host: host,
		}
		key := aclKey(entry)
		if parsed, err := aclOf(key); err != nil || parsed != entry {
			t.Errorf("%q became %v, %v", key, parsed, err)
		}
	})
}

func TestACLKeysAreReadable(t *testing.T) {
	key := aclKey(api.NewACL{
		Principal: "User:*", ResourceType: "GROUP", PatternType: "PREFIXED", ResourceName: "a/b c",
		Operation: "READ", Permission: "DENY", Host: "*",
	})
	if key != "User:*/GROUP/PREFIXED/a%2Fb%20c/READ/DENY/*" {
		t.Errorf("wrote %q", key)
	}
	for _, wrong := range []string{"", "User:*/TOPIC", "a/b/c/d/e/f/%zz"} {
		if _, err := aclOf(wrong); err == nil {
			t.Errorf("took %q", wrong)
		}
	}
}

func TestSchedulesComeBackAsTheyWereGiven(t *testing.T) {
	original := []api.Schedule{
		{Days: []string{"mon", "fri"}, Start: "07:00", End: "19:00", TimeZone: "Europe/Zurich"},
		{Days: []string{"sun"}, Start: "22:00", End: "24:00", TimeZone: "UTC"},
	}
	if schedules := *schedulesWish(schedulesOf(original)); !reflect.DeepEqual(schedules, original) {
		t.Errorf("%v", schedules)
	}
	none := schedulesUnlessNone(nil, types.ListNull(scheduleType))
	if !none.IsNull() || len(*schedulesWish(none)) != 0 {
		t.Errorf("%v", none)
	}
	// What somebody else took away shows as a difference.
	if gone := schedulesUnlessNone(nil, schedulesOf(original)); gone.IsNull() {
		t.Errorf("%v", gone)
	}
}

func TestConfigChangesAreWhatDiffers(t *testing.T) {
	changes := configChanges(
		map[string]string{"stays": "1", "goes": "2", "changes": "3"},
		map[string]string{"stays": "1", "changes": "4", "comes": "5"},
	)
	shown := map[string]string{}
	for name, value := range changes {
		shown[name] = "null"
		if value != nil {
			shown[name] = *value
		}
	}
	expected := map[string]string{"goes": "null", "changes": "4", "comes": "5"}
	if !maps.Equal(shown, expected) {
		t.Errorf("%v", shown)
	}
}

func TestNoConfigsAreWhatTheyWereBefore(t *testing.T) {
	none, empty := types.MapNull(types.StringType), mapOf(nil)
	if !mapUnlessNone(nil, none).Equal(none) || !mapUnlessNone(nil, empty).Equal(empty) {
		t.Error("nothing is not what it was")
	}
	some := mapOf(map[string]string{"a": "b"})
	if !mapUnlessNone(map[string]string{"a": "b"}, none).Equal(some) {
		t.Error("something is lost")
	}
	if !mapUnlessNone(nil, some).Equal(empty) {
		t.Error("what was taken away is kept")
	}
}

func TestProblemsAreShownWhereTheyAre(t *testing.T) {
	attributes := map[string]attr.Value{
		"name": types.StringValue("a"), "configs": mapOf(map[string]string{"retention.ms": "x"}),
	}
	for pointer, expected := range map[string]string{
		"/name":                         "name",
		"/items/3/name":                 "name",
		"/configs/retention.ms":         `configs["retention.ms"]`,
		"/items/0/configs/retention.ms": `configs["retention.ms"]`,
		"/configs":                      "configs",
		"/configs/unknown":              "configs",
		"/elsewhere":                    "",
		"?name":                         "",
		"":                              "",
	} {
		place, _ := placeOf(pointer, attributes)
		if place.String() != expected {
			t.Errorf("%s is at %s", pointer, place)
		}
	}
}

func TestAReportHasTheWholeProblem(t *testing.T) {
	problem := &api.Problem{
		Status: 422, Code: "validation_failed", Title: "Wrong", RequestID: "req_a",
		Errors: []api.FieldError{{Pointer: "/name", Detail: "Too long."}},
	}
	var diagnostics diag.Diagnostics
	reportError(&diagnostics, "Cannot", problem, map[string]attr.Value{"name": types.StringValue("a")})
	if len(diagnostics) != 1 || !strings.Contains(diagnostics[0].Detail(), "request req_a") {
		t.Errorf("%v", diagnostics)
	}
	if _, placed := diagnostics[0].(diag.DiagnosticWithPath); !placed {
		t.Error("it is at no attribute")
	}
	reportError(&diagnostics, "Cannot", errors.New("plain"), nil)
	reportError(&diagnostics, "Cannot", nil, nil)
	if len(diagnostics) != 2 {
		t.Errorf("%v", diagnostics)
	}
}

func TestPartitionsOnlyGrow(t *testing.T) {
	topic := func(name string, partitions types.Int64) topicModel {
		return topicModel{
			ClusterID: types.StringValue("cl_a"), Name: types.StringValue(name),
			Partitions: partitions,
		}
	}
	before := topic("a", types.Int64Value(6))
	for _, example := range []struct {
		plan    topicModel
		refused bool
	}{
		{topic("a", types.Int64Value(5)), true},
		{topic("a", types.Int64Value(6)), false},
		{topic("a", types.Int64Value(7)), false},
		{topic("a", types.Int64Unknown()), false},
		{topic("another", types.Int64Value(1)), false},
	} {
		var diagnostics diag.Diagnostics
		refuseFewerPartitions(before, &example.plan, &diagnostics)
		if diagnostics.HasError() != example.refused {
			t.Errorf("%v: %v", example.plan.Partitions, diagnostics)
		}
	}
}
