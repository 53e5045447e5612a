package metric

import (
	"strings"

	"github.com/sluice-queue/sluice/engine"
)

// Reason is a word for the cause of moves, as in sluice_moves_total.
type Reason struct {
	// Word is the label's value.
	Word string
	// Meaning is the explanation for people.
	Meaning string

	text  string // the text in settlements
	where where
}

// where is the position of the text in a settlement's reason.
type where int

const (
	whole where = iota
	front
	inside
)

// reasons are checked in this order, after texts that are the whole reason.
var reasons = []Reason{
	{"attempts_spent", "the last attempt failed", "attempts spent", whole},
	{"permanent", "the handler said that it will never succeed", "permanent error", whole},
	{"recoveries_spent", "the job lost too many holders", "recoveries spent", whole},
	{"lease_expired", "the holder did not renew its lease", "lease ran out", whole},
	{"lease_expired", "", "the lease of ", front},
	{"lease_lost", "a worker could not renew the lease and stopped the handler", "the lease could not be renewed", whole},
	{"snoozed", "the handler handed it back", "snoozed", whole},
	{"shutdown", "the worker was shut down", "worker shut down", whole},
	{"expired", "its expires_at passed", "expired", whole},
	{"act", "a person did it", "act", whole},
	{"has_run", "upkeep found its run at the engine", "the engine has the run", whole},
	{"adopted", "the engine had the run already, of a job that the store has lost", "adopted: ", front},
	{"engine_refused", "the engine will never take the run", "the engine refused the run for good", front},
	{"engine_busy", "the engine has too much to do", engine.ErrBusy.Error(), inside},
	{"engine_target", "the engine lacks what the queue's settings name", engine.ErrTarget.Error(), inside},
	{"ref_taken", "another run has its ref", "another run has its ref", front},
	{"unknown_outcome", "whether the run happened cannot be known", "unknown outcome", front},
	{"unknown_outcome", "", "it may have been at ", front},
	{"run_failed", "the run failed", "the run failed", front},
	{"run_timed_out", "the run timed out", "the run timed out", front},
	{"run_cancelled", "the run was cancelled", "the run cancelled", front},
	{"run_terminated", "the run was terminated", "the run terminated", front},
	{"refused", "the central store refused it", "refused by ", front},
	{"other", "in other words", "", inside},
}

// Reasons lists the values of the label reason. The label is empty if a move needs no reason.
func Reasons() []Reason {
	var out []Reason
	for _, r := range reasons {
		if r.Meaning != "" {
			out = append(out, r)
		}
	}
	return out
}

var wholeReasons = func() map[string]string {
	words := make(map[string]string)
	for _, r := range reasons {
		if r.where == whole {
			words[r.text] = r.Word
		}
	}
	return words
}()

// reasonOf returns one of a few words for a settlement's reason.
func reasonOf(text string) string {
	if text == "" {
		return ""
	}
	if word, known := wholeReasons[text]; known {
		return word
	}
	for _, r := range reasons {
		if r.where == front && strings.HasPrefix(text, r.text) || r.where == inside && strings.Contains(text, r.text) {
			return r.Word
		}
	}
	return "other"
}
