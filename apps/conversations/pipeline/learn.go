package pipeline

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/sluice-queue/sluice/apps/conversations/hook"
	"github.com/sluice-queue/sluice/apps/conversations/mind"
	"github.com/sluice-queue/sluice/apps/conversations/records"
	"github.com/sluice-queue/sluice/apps/conversations/stages"
	"github.com/sluice-queue/sluice/scrub"
	"github.com/sluice-queue/sluice/worker"
)

// Validated is the result of a validation.
type Validated struct {
	Messages int `json:"messages"`
	Findings int `json:"findings"`
}

// validate looks once more at the messages of a conversation that nobody has looked at, removes what is found, and lets
// learnings be extracted. It sees sanitized text alone.
func (p *Pipeline) validate(ctx context.Context, job *worker.Job[stages.Validate]) error {
	conversation := job.Payload.ConversationID
	messages, err := p.db.ToValidate(ctx, conversation)
	if err != nil {
		return err
	}
	if len(messages) == 0 {
		return finish(ctx, p, job, Skipped{true, "already-validated"}, nil)
	}
	findings, err := p.options.Mind.Validate(ctx, messages)
	if err != nil {
		return err
	}
	removals := make(map[string][]records.Removal)
	for i := range messages {
		messages[i].Content, removals[messages[i].ID] = p.remove(conversation, messages[i], findings)
	}
	return finish(ctx, p, job, Validated{len(messages), len(findings)}, func(tx records.Tx) error {
		for _, m := range messages {
			if _, err := tx.MarkValidated(ctx, m, removals[m.ID]); err != nil {
				return err
			}
		}
		next, err := stages.NewExtraction(stages.Extract{ConversationID: conversation, MinConfidence: p.options.MinConfidence})
		return enqueue(ctx, tx, next, err)
	})
}

// remove takes findings out of a message, the longest first, because one may hold another.
func (p *Pipeline) remove(conversation string, m records.Message, findings []mind.Finding) (string, []records.Removal) {
	findings = slices.Clone(findings)
	slices.SortFunc(findings, func(a, b mind.Finding) int { return len(b.Text) - len(a.Text) })
	content := m.Content
	var removals []records.Removal
	for _, f := range findings {
		if f.MessageID != m.ID || len(strings.TrimSpace(f.Text)) < 2 || strings.HasPrefix(f.Text, "[redacted:") || !strings.Contains(content, f.Text) {
			continue
		}
		category := categoryOf(f.Category)
		replacement := "[redacted:" + category + "]"
		content = strings.ReplaceAll(content, f.Text, replacement)
		removals = append(removals, records.Removal{
			Conversation: conversation, Message: m.ID, Category: category, Rule: "mind", Detector: "ai",
			Hash: hook.Hash(p.hashKey(), f.Text), Replacement: replacement, Confidence: min(max(f.Confidence, 0), 1),
		})
	}
	return content, removals
}

// categoryOf takes a category from outside only if it is one.
func categoryOf(category string) string {
	if slices.Contains([]string{"name", "address", "birthday", "account", "password"}, category) {
		return category
	}
	return "other"
}

func (p *Pipeline) hashKey() []byte {
	if len(p.options.HashKey) > 0 {
		return p.options.HashKey
	}
	return randomKey()
}

// Extracted is the result of an extraction.
type Extracted struct {
	Learnings  int `json:"learnings"`
	Duplicates int `json:"duplicates"`
	Unsure     int `json:"unsure"`
}

// errMovedOn says that somebody else has extracted meanwhile. The next attempt finds what is left.
var errMovedOn = errors.New("learnings of the conversation were extracted by another job meanwhile")

// extract finds what was learnt in a conversation, and lets each learning that is new be uploaded.
func (p *Pipeline) extract(ctx context.Context, job *worker.Job[stages.Extract]) error {
	conversation := job.Payload.ConversationID
	before, err := p.db.ExtractedTo(ctx, conversation)
	if err != nil {
		return err
	}
	messages, err := p.db.Validated(ctx, conversation)
	if err != nil {
		return err
	}
	if len(messages) == 0 || messages[len(messages)-1].Place <= before {
		return finish(ctx, p, job, Skipped{true, "already-extracted"}, nil)
	}
	learnings, err := p.options.Mind.Extract(ctx, messages, job.Payload.Categories)
	if err != nil {
		return err
	}
	result := new(Extracted)
	return finish(ctx, p, job, result, func(tx records.Tx) error {
		moved, err := tx.MarkExtracted(ctx, conversation, before, messages[len(messages)-1].Place)
		if err == nil && !moved {
			err = errMovedOn
		}
		if err != nil {
			return err
		}
		*result = Extracted{}
		for _, l := range learnings {
			if err := p.keep(ctx, tx, job.Payload, l, result); err != nil {
				return err
			}
		}
		return nil
	})
}

// keep stores a learning that is sure enough and new, and lets it be uploaded. What a model wrote is scrubbed like what a
// person wrote.
func (p *Pipeline) keep(ctx context.Context, tx records.Tx, want stages.Extract, l records.Learning, result *Extracted) error {
	if l.Confidence < want.MinConfidence || l.Content == "" {
		result.Unsure++
		return nil
	}
	l.Category, l.Title, l.Content = scrub.Text(l.Category), scrub.Text(l.Title), scrub.Text(l.Content)
	for i, tag := range l.Tags {
		l.Tags[i] = scrub.Text(tag)
	}
	l.Sources = slices.DeleteFunc(slices.Clone(l.Sources), func(id string) bool { return !stages.IsID(id) })
	id, added, err := tx.AddLearning(ctx, want.ConversationID, l)
	if err != nil {
		return err
	}
	if !added {
		result.Duplicates++
		p.options.Logger.Debug("learning known", "dedupe_hash", l.Hash())
		return nil
	}
	result.Learnings++
	if p.options.Target == nil {
		return nil
	}
	to := *p.options.Target
	to.LearningID = id
	next, err := stages.NewUpload(to)
	return enqueue(ctx, tx, next, err)
}
