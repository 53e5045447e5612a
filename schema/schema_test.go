package schema_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/sluice-queue/sluice/schema"
)

const payment = `{
	"type": "object",
	"required": ["account", "cents"],
	"additionalProperties": false,
	"properties": {
		"account": {"type": "string", "pattern": "^[a-z]+$"},
		"cents": {"type": "integer", "minimum": 1},
		"mail": {"type": "string", "format": "email"},
		"to": {"$ref": "#/$defs/party"}
	},
	"$defs": {"party": {"enum": ["bank", "card"]}}
}`

func TestPayloadsAreCheckedAgainstTheSchema(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ payload, want string }{
		"it matches":                      {`{"account":"acme","cents":4200}`, ""},
		"a number larger than any float":  {`{"account":"acme","cents":12345678901234567890123}`, ""},
		"a field is missing":              {`{"account":"acme"}`, "/ lacks cents"},
		"a field has another type":        {`{"account":"acme","cents":"many"}`, "/cents is string, want integer"},
		"a field is not known":            {`{"account":"acme","cents":1,"iban":"x"}`, "/ has iban, which the schema does not know"},
		"a value is out of range":         {`{"account":"acme","cents":0}`, `/cents breaks "minimum"`},
		"a pattern, without the value":    {`{"account":"SECRET-42","cents":1}`, `/account breaks "pattern"`},
		"a format":                        {`{"account":"acme","cents":1,"mail":"nobody"}`, `/mail breaks "format"`},
		"a reference within the schema":   {`{"account":"acme","cents":1,"to":"friend"}`, `/to breaks "enum"`},
		"several faults are all named":    {`{"cents":0}`, `/ lacks account; /cents breaks "minimum"`},
		"it is not JSON":                  {`{"account":`, "unexpected EOF"},
		"it is something else than asked": {`[]`, "/ is array, want object"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := schema.New().Check(payment, []byte(c.payload))
			switch {
			case c.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v, want %q", err, c.want)
			case err != nil && strings.Contains(err.Error(), "SECRET"):
				t.Errorf("the error shows a value: %v", err)
			}
		})
	}
}

func TestWhatIsNoSchemaIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"no JSON":              {`{"type":`, "not a JSON Schema"},
		"an unknown type":      {`{"type":"money"}`, "not a JSON Schema"},
		"a file":               {`{"$ref":"file:///etc/passwd"}`, "outside of the schema"},
		"an address":           {`{"$ref":"https://example.com/x.json"}`, "outside of the schema"},
		"a bad expression":     {`{"pattern":"("}`, "not a JSON Schema"},
		"a missing definition": {`{"$ref":"#/$defs/none"}`, "not a JSON Schema"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := schema.New().Compile(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestCheckerServesManyGoroutines(t *testing.T) {
	t.Parallel()
	checker := schema.New()
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 50 {
				if err := checker.Check(payment, []byte(`{"account":"acme","cents":1}`)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
}
