package provider

import (
	"fmt"
	"maps"
	"slices"
	"testing"
)

func alertConfig(more object) object {
	config := object{
		"cluster_id": clusterID, "name": "behind", "kind": "group_lag", "threshold": 1000,
	}
	maps.Copy(config, more)
	return config
}

func TestAnAlertIsMadeChangedAndRemoved(t *testing.T) {
	service, endpoint := newFake(t)
	walk := newWalker(t, endpoint)
	state := walk.made("freshet_alert", nil, alertConfig(nil))
	made := service.alerts["alr_0"]
	if state["id"] != "alr_0" || made.ForS != 300 || made.Group != "" || len(made.Emails) != 0 {
		t.Errorf("%v, %+v", state, made)
	}
	changed := alertConfig(object{
		"name": "far behind", "group": "payments", "threshold": 2000, "for_s": 0,
		"emails": []any{"bob@example.org", "anna@example.org"},
	})
	state = walk.made("freshet_alert", state, changed)
	alert := service.alerts["alr_0"]
	if alert.Name != "far behind" || alert.Group != "payments" || alert.Threshold != 2000 ||
		alert.ForS != 0 || len(alert.Emails) != 2 {
		t.Errorf("%+v", alert)
	}
	if again := newWalker(t, endpoint).read("freshet_alert", state); fmt.Sprint(again) !=
		fmt.Sprint(state) {
		t.Errorf("read %v, had %v", again, state)
	}
	for _, other := range []object{{"kind": "group_lag_seconds"}, {"cluster_id": "cl_b"}} {
		if !walk.plan("freshet_alert", state, alertConfig(other)).replaces {
			t.Errorf("%v is taken in place", other)
		}
	}
	walk.made("freshet_alert", state, nil)
	if len(service.alerts) != 0 {
		t.Errorf("left %v", service.alerts)
	}
}

func TestAlertsAreOneListAndImportedByNameOrID(t *testing.T) {
	service, endpoint := newFake(t)
	first := newWalker(t, endpoint).made("freshet_alert", nil, alertConfig(nil))
	other := alertConfig(object{"name": "full", "kind": "storage_bytes"})
	second := newWalker(t, endpoint).made("freshet_alert", nil, other)
	service.asked = nil
	reader := newWalker(t, endpoint)
	reader.read("freshet_alert", first)
	reader.read("freshet_alert", second)
	if !slices.Equal(service.asked, []string{"GET /alerts"}) {
		t.Errorf("asked %v", service.asked)
	}
	for _, id := range []string{"alr_1", "cl_a/full", "orders/full"} {
		state, said := newWalker(t, endpoint).imported("freshet_alert", id)
		if fmt.Sprint(state) != fmt.Sprint(second) {
			t.Errorf("%s is %v (%v)", id, state, said)
		}
	}
	newWalker(t, endpoint).made("freshet_alert", nil, other)
	for _, id := range []string{"cl_a/full", "cl_a/none", "full"} {
		if state, said := newWalker(t, endpoint).imported("freshet_alert", id); len(said) == 0 {
			t.Errorf("%s is %v", id, state)
		}
	}
	delete(service.alerts, "alr_0")
	if state := newWalker(t, endpoint).read("freshet_alert", first); state != nil {
		t.Errorf("%v", state)
	}
}

func TestAlertsThatMakeNoSenseAreRefusedBeforehand(t *testing.T) {
	_, endpoint := newFake(t)
	walk := newWalker(t, endpoint)
	for _, wrong := range []object{
		{"kind": "connections", "group": "payments"},
		{"kind": "weather"},
		{"threshold": -1},
		{"for_s": 86401},
		{"emails": []any{"Anna@example.org"}},
		{"emails": []any{"anna"}},
	} {
		if said := walk.validated("freshet_alert", alertConfig(wrong)); len(said) == 0 {
			t.Errorf("took %v", wrong)
		}
	}
	for _, right := range []object{
		{"kind": "group_lag_seconds", "group": "payments"},
		{"kind": "connections", "group": ""},
		{"kind": "storage_growth_bytes", "emails": []any{"anna@example.org"}},
	} {
		if said := walk.validated("freshet_alert", alertConfig(right)); len(said) != 0 {
			t.Errorf("refused %v: %s", right, said[0].Detail)
		}
	}
}
