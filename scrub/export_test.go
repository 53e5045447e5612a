package scrub

// Words gives the words of all rules.
func Words() []string {
	var all []string
	for _, r := range theIndex().rules {
		all = append(all, r.words...)
	}
	return all
}
