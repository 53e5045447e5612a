// Package mind is what the pipeline asks of an AI: to find what rules have missed, and to say what was learnt. There are two:
// Local, rules that need nothing, and Claude, the model of a vendor.
package mind

import (
	"context"
	"slices"

	"github.com/sluice-queue/sluice/apps/conversations/records"
)

// Mind looks at conversations. What it is given is sanitized, and what it gives is sanitized again by its callers.
type Mind interface {
	// Validate finds what is still personal or secret in messages.
	Validate(ctx context.Context, messages []records.Message) ([]Finding, error)
	// Extract finds what was learnt in a conversation, in the categories that are wanted; none: in all of them.
	Extract(ctx context.Context, messages []records.Message, categories []string) ([]records.Learning, error)
}

// Finding is something in a message that must go.
type Finding struct {
	MessageID string `json:"message_id"`
	// Text stands in the message as it is here. It must not be stored or logged.
	Text string `json:"text"`
	// Category is what it is, such as name.
	Category   string  `json:"category"`
	Confidence float64 `json:"confidence"`
}

// Categories are those of learnings.
var Categories = []string{"bug_fix", "best_practice", "pitfall", "decision", "insight"}

func wanted(category string, categories []string) bool {
	return len(categories) == 0 || slices.Contains(categories, category)
}
