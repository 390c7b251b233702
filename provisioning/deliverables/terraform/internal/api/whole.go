package api

import (
	"bytes"
	"fmt"
	"math/big"
	"strconv"
)

// Whole is a whole number of any length, as its digits. The service writes those that a float64
// would round as text; a service before that wrote numbers, which are read too.
type Whole string

// UnmarshalJSON reads a string of digits or a number.
func (n *Whole) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		return nil
	}
	digits := string(bytes.Trim(text, `"`))
	if _, whole := new(big.Int).SetString(digits, 10); !whole {
		return fmt.Errorf("%s is not a whole number", text)
	}
	*n = Whole(digits)
	return nil
}

// Float returns the number with all of its digits; nil where it has none.
func (n Whole) Float() *big.Float {
	whole, valid := new(big.Int).SetString(string(n), 10)
	if !valid {
		return nil
	}
	return new(big.Float).SetPrec(512).SetInt(whole)
}

// Int64 is a whole number of 64 bits, which the service writes as text; see Whole.
type Int64 int64

// UnmarshalJSON reads a string of digits or a number.
func (n *Int64) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		return nil
	}
	number, err := strconv.ParseInt(string(bytes.Trim(text, `"`)), 10, 64)
	if err != nil {
		return fmt.Errorf("%s is not a whole number of 64 bits", text)
	}
	*n = Int64(number)
	return nil
}

// MarshalJSON writes a string of digits.
func (n Int64) MarshalJSON() ([]byte, error) {
	return []byte(strconv.Quote(strconv.FormatInt(int64(n), 10))), nil
}
