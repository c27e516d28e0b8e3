package child

import (
	"bufio"
	"errors"
	"io"
	"strings"
)

// maxLine is what is kept of a line, in bytes.
const maxLine = 4 << 10

// readLines calls line for each line until r ends. Of a longer one only the beginning is kept.
func readLines(r io.Reader, line func(string)) {
	in := bufio.NewReaderSize(r, maxLine)
	for {
		text, err := in.ReadSlice('\n')
		if len(text) > 0 {
			line(strings.ToValidUTF8(strings.TrimRight(string(text), "\r\n"), "\uFFFD"))
		}
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = in.ReadSlice('\n')
		}
		if err != nil {
			return
		}
	}
}
