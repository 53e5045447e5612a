package sluice_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/memory"
)

const tooDeep = "it is nested deeper than 500 levels"

func nested(depth int) json.RawMessage {
	return append(bytes.Repeat([]byte("["), depth), bytes.Repeat([]byte("]"), depth)...)
}

// list is a payload whose depth its type does not say.
type list []list

func TestPayloadsAreNestedAtMost500Deep(t *testing.T) {
	t.Parallel()
	client := sluice.NewClient(memory.New(memory.Options{}), sluice.ClientOptions{})
	value, lists := list{}, sluice.QueueOf[list]("q")
	for range 499 {
		value = list{value}
	}
	if _, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: "q", Payload: nested(500)}); err != nil {
		t.Error(err)
	}
	if _, err := lists.Enqueue(t.Context(), client, value, sluice.EnqueueOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := lists.Enqueue(t.Context(), client, list{value}, sluice.EnqueueOptions{}); !errors.Is(err, sluice.ErrInvalid) || !strings.Contains(err.Error(), "payload: "+tooDeep) {
		t.Errorf("a Go value of 501 levels: %v", err)
	}
}

func TestResultsAndCheckpointsAreNestedAtMost500Deep(t *testing.T) {
	t.Parallel()
	for _, field := range []string{"result", "checkpoint"} {
		if err := sluice.CheckResult(field, nested(500)); err != nil {
			t.Error(err)
		}
		if err := sluice.CheckResult(field, nested(501)); !errors.Is(err, sluice.ErrInvalid) || !strings.Contains(err.Error(), field+": "+tooDeep) {
			t.Errorf("a %s of 501 levels: %v", field, err)
		}
	}
}
