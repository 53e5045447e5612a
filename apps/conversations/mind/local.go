package mind

import (
	"context"
	"regexp"
	"strings"

	"github.com/sluice-queue/sluice/apps/conversations/records"
)

// Local is a Mind of rules: it finds names and addresses by how people introduce them, and learnings by how people tell
// of them. It needs no network, and is right less often than a model.
type Local struct{}

// told are the ways in which people tell who somebody is, and where.
var told = []struct {
	category   string
	pattern    *regexp.Regexp
	confidence float64
}{
	{"name", regexp.MustCompile(`\b(?:[Mm]y name is|[Tt]his is|I am|I'm|[Cc]olleague|[Cc]ustomer|[Pp]atient|[Mm]anager|Dear|Mr\.?|Mrs\.?|Ms\.?|Dr\.?|[Rr]egards,|[Cc]heers,|[Tt]hanks,)\s+(\p{Lu}[\pL'-]{1,30}(?:\s+\p{Lu}\.)?\s+\p{Lu}[\pL'-]{1,30})\b`), 0.9},
	{"address", regexp.MustCompile(`\b(\d{1,5}\s+(?:\p{Lu}\pL+\s+){1,3}(?:Street|St\.?|Avenue|Ave\.?|Road|Rd\.?|Lane|Boulevard|Drive))\b`), 0.8},
	{"birthday", regexp.MustCompile(`(?i)\bborn (?:on )?(\d{1,4}[-./]\d{1,2}[-./]\d{1,4})\b`), 0.8},
}

// Validate finds names, addresses and birthdays. A name that is introduced once is found again where it stands alone.
func (Local) Validate(_ context.Context, messages []records.Message) ([]Finding, error) {
	var found []Finding
	names := make(map[string]Finding)
	for _, m := range messages {
		for _, t := range told {
			for _, match := range t.pattern.FindAllStringSubmatch(m.Content, -1) {
				f := Finding{MessageID: m.ID, Text: match[1], Category: t.category, Confidence: t.confidence}
				found = append(found, f)
				if t.category == "name" {
					names[f.Text] = f
				}
			}
		}
	}
	for name, f := range names {
		for _, m := range messages {
			if m.ID != f.MessageID && strings.Contains(m.Content, name) {
				found = append(found, Finding{MessageID: m.ID, Text: name, Category: f.Category, Confidence: f.Confidence})
			}
		}
	}
	return found, nil
}

// lessons are the ways in which people tell what they have learnt.
var lessons = []struct {
	category   string
	pattern    *regexp.Regexp
	confidence float64
}{
	{"bug_fix", regexp.MustCompile(`(?i)\b(?:the fix (?:was|is) to|fixed (?:it )?by|the (?:root )?cause (?:was|is)|turned out (?:that|to be)|solved (?:it )?by)\b`), 0.9},
	{"best_practice", regexp.MustCompile(`(?i)\b(?:always|make sure (?:to|that)|best practice is|it is better to|prefer)\b`), 0.75},
	{"pitfall", regexp.MustCompile(`(?i)\b(?:never|avoid|beware of|do not forget|watch out for)\b`), 0.75},
	{"decision", regexp.MustCompile(`(?i)\b(?:we decided to|we chose|we will use|decided against)\b`), 0.8},
	{"insight", regexp.MustCompile(`(?i)\b(?:i learned that|we learned that|lesson learned:|it means that|the reason is)\b`), 0.8},
}

var sentenceEnd = regexp.MustCompile(`[.!?](?:\s+|$)|\n+`)

const (
	minLesson = 30 // characters; a shorter sentence says too little
	maxLesson = 600
)

// Extract takes the sentences that tell of something learnt.
func (Local) Extract(_ context.Context, messages []records.Message, categories []string) ([]records.Learning, error) {
	var all []records.Learning
	for _, m := range messages {
		for _, sentence := range sentenceEnd.Split(m.Content, -1) {
			sentence = strings.Join(strings.Fields(sentence), " ")
			if len(sentence) < minLesson || len(sentence) > maxLesson {
				continue
			}
			for _, l := range lessons {
				if wanted(l.category, categories) && l.pattern.MatchString(sentence) {
					all = append(all, records.Learning{
						Category: l.category, Title: title(sentence), Content: sentence, Confidence: l.confidence, Tags: tags(sentence), Sources: []string{m.ID},
					})
					break
				}
			}
		}
	}
	return all, nil
}

// title is the beginning of a sentence.
func title(sentence string) string {
	words := strings.Fields(sentence)
	if len(words) > 9 {
		return strings.Join(words[:9], " ") + " …"
	}
	return sentence
}

var techniques = []string{"go", "python", "sqlite", "postgresql", "docker", "kubernetes", "react", "typescript", "redis", "kafka", "git", "http", "css", "terraform", "rust"}

// tags are the techniques that a sentence names.
func tags(sentence string) []string {
	words := strings.FieldsFunc(strings.ToLower(sentence), func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') })
	var all []string
	for _, technique := range techniques {
		for _, word := range words {
			if word == technique {
				all = append(all, technique)
				break
			}
		}
	}
	return all
}
