package api

import (
	"encoding/json"
	"testing"
)

func TestWholeNumbersKeepTheirDigits(t *testing.T) {
	for _, text := range []string{
		`{"quantity": "1267650600228229401496703205377"}`,
		`{"quantity": 1267650600228229401496703205377}`,
	} {
		var item UsageItem
		if err := json.Unmarshal([]byte(text), &item); err != nil {
			t.Fatal(err)
		}
		if shown := item.Quantity.Float().Text('f', 0); shown != "1267650600228229401496703205377" {
			t.Errorf("%s is %s", text, shown)
		}
	}
}

func TestThresholdsKeepTheirDigits(t *testing.T) {
	for _, text := range []string{
		`{"threshold": "9007199254740993", "value": "9007199254740995"}`,
		`{"threshold": 9007199254740993, "value": 9007199254740995}`,
	} {
		var alert Alert
		if err := json.Unmarshal([]byte(text), &alert); err != nil {
			t.Fatal(err)
		}
		if alert.Threshold != 9007199254740993 || *alert.Value != 9007199254740995 {
			t.Errorf("%s is %+v", text, alert)
		}
		written, err := json.Marshal(AlertWish{Threshold: &alert.Threshold})
		if err != nil || string(written) != `{"threshold":"9007199254740993"}` {
			t.Errorf("%s, %v", written, err)
		}
	}
	var unknown Alert
	if err := json.Unmarshal([]byte(`{"threshold": "1", "value": null}`), &unknown); err != nil ||
		unknown.Value != nil {
		t.Errorf("%v, %v", unknown.Value, err)
	}
}

func TestWhatIsNoWholeNumberIsRefused(t *testing.T) {
	for _, text := range []string{`"1.5"`, `1e3`, `"x"`, `true`, `"9223372036854775808"`} {
		var number Int64
		if json.Unmarshal([]byte(text), &number) == nil {
			t.Errorf("%s became %d", text, number)
		}
	}
	for _, text := range []string{`1.5`, `""`, `"x"`, `[]`} {
		var number Whole
		if json.Unmarshal([]byte(text), &number) == nil {
			t.Errorf("%s became %s", text, number)
		}
	}
}
