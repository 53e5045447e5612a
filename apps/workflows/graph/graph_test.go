package graph_test

import (
	"errors"
	"testing"

	"github.com/sluice-queue/sluice/apps/workflows/graph"
)

func TestCheckNamesTheRuleThatIsBroken(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"not JSON":                    `{`,
		"no nodes":                    `{"start":"a"}`,
		"a start that is no node":     `{"start":"b","nodes":[{"id":"a","kind":"set","variable":"x"}]}`,
		"an id twice":                 `{"start":"a","nodes":[{"id":"a","kind":"set","variable":"x"},{"id":"a","kind":"set","variable":"x"}]}`,
		"a next that is no node":      `{"start":"a","nodes":[{"id":"a","kind":"set","variable":"x","next":"b"}]}`,
		"an unknown kind":             `{"start":"a","nodes":[{"id":"a","kind":"loop"}]}`,
		"a delay without a duration":  `{"start":"a","nodes":[{"id":"a","kind":"delay","for":"soon"}]}`,
		"a negative delay":            `{"start":"a","nodes":[{"id":"a","kind":"delay","for":"-1s"}]}`,
		"a URL of another scheme":     `{"start":"a","nodes":[{"id":"a","kind":"http","url":"file:///etc/passwd"}]}`,
		"a condition without an op":   `{"start":"a","nodes":[{"id":"a","kind":"condition","variable":"x"}]}`,
		"a set node with no variable": `{"start":"a","nodes":[{"id":"a","kind":"set"}]}`,
	} {
		if _, err := graph.Parse([]byte(text)); !errors.Is(err, graph.ErrInvalid) {
			t.Errorf("%s: got %v, want an ErrInvalid", name, err)
		}
	}
}

func TestConditionsCompareNumbersAsNumbers(t *testing.T) {
	t.Parallel()
	variables := map[string]any{"n": 10.0, "text": "a", "flag": true}
	for _, c := range []struct {
		variable, op string
		value        any
		holds        bool
	}{
		{"n", "equal", 10.0, true},
		{"n", "less", 9.0, false},
		{"n", "greater", 9.0, true},
		{"text", "equal", "a", true},
		{"text", "equal", "b", false},
		{"text", "less", "b", false},
		{"flag", "equal", true, true},
		{"absent", "equal", nil, true},
		{"absent", "less", 1.0, false},
	} {
		n := graph.Node{Kind: graph.Condition, Variable: c.variable, Op: c.op, Value: c.value}
		if n.Holds(variables) != c.holds {
			t.Errorf("%s %s %v: got %t, want %t", c.variable, c.op, c.value, !c.holds, c.holds)
		}
	}
}
