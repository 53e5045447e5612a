package scrub

// Words returns the words of all rules.
func Words() []string {
	var all []string
	for _, r := range theIndex().rules {
		all = append(all, r.words...)
	}
	return all
}

// Work returns how many bytes the rules read of a text.
func Work(text string) int {
	c := cleaner{scrubber: everything}
	c.scrub(text)
	return c.work
}
