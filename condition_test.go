package sluice_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/presence"
)

// away is the condition of a dispatcher whose engine does not answer.
func away(queue string) presence.Condition {
	return presence.EngineCondition(queue, "eu", time.Unix(1_800_000_000, 0), "the breaker is open", errors.New("no route"))
}

func TestConditionsComeBackAsTheyWereStored(t *testing.T) {
	t.Parallel()
	want := []presence.Condition{away("q"), {Kind: presence.ConditionUnfollowed, Text: `nobody; "since" noon`}}
	text, err := presence.StoredConditions(want)
	if err != nil {
		t.Fatal(err)
	}
	if got := presence.ConditionsFromRow(text); len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("%v came back as %v", want, got)
	}
	for stored, want := range map[string][]presence.Condition{
		"": nil, "queue q: the breaker is open": {{Kind: presence.ConditionOther, Text: "queue q: the breaker is open"}},
	} {
		if got := presence.ConditionsFromRow(stored); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q gives %v, want %v", stored, got, want)
		}
	}
}

func TestTheKindOfAnEngineConditionIsThatOfItsError(t *testing.T) {
	t.Parallel()
	for kind, err := range map[presence.ConditionKind]error{
		presence.ConditionEngineAway:   fmt.Errorf("start: %w", engine.ErrUnavailable),
		presence.ConditionEngineTarget: fmt.Errorf("start: %w", engine.ErrTarget),
		presence.ConditionCodec:        fmt.Errorf("start: %w: %w", engine.ErrUnavailable, engine.ErrCodec),
	} {
		c := presence.EngineCondition("q", "temporal", away("q").Since, "the breaker is open", err)
		if c.Kind != kind || c.Repair == "" || !c.OfEngine() {
			t.Errorf("%v gives %+v, want the kind %s", err, c, kind)
		}
	}
}

// TestALongErrorKeepsItsCause cuts a long error, and checks that the cause at its end stays.
func TestALongErrorKeepsItsCause(t *testing.T) {
	t.Parallel()
	err := errors.New("start run: " + strings.Repeat("and so on ", 100) + "dial tcp: connection refused")
	text := presence.EngineCondition("q", "eu", away("q").Since, "the breaker is open", err).Text
	if !strings.HasPrefix(text, "the breaker is open: engine eu: start run") || !strings.HasSuffix(text, "dial tcp: connection refused") || len(text) > 200 {
		t.Errorf("it says %q", text)
	}
}
