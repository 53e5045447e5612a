package console

// SaveAtMost bounds the files of all that match.
func (c *Console) SaveAtMost(jobs int) { c.mostSaved = jobs }
