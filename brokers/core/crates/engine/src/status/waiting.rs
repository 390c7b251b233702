//! When the first waiting records were made of groups that other brokers coordinate: only the
//! broker that leads a partition can say it, and only the coordinator knows where the group is. So
//! the reader of both asks the leader.

use super::StatusState;
use super::partitions::Spot;
use super::times::Time;

/// The most times that are looked at for one question.
const PLACES_MAX: usize = 256;

/// A partition, and an offset up to which a group has consumed it.
type Place = (Spot, i64);

/// What a question names: `topic.partition.offset`, by comma. What is none of these is left out.
pub(super) fn read_places(text: &str) -> Vec<Place> {
    text.split(',').take(PLACES_MAX).filter_map(read_one).collect()
}

fn read_one(text: &str) -> Option<Place> {
    let mut numbers = text.split('.');
    let (topic, index) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
    let offset = numbers.next()?.parse().ok()?;
    numbers.next().is_none().then_some(((topic, index), offset))
}

impl StatusState {
    /// The times that are known at these places, as entries of the answer's `times`. The
    /// others are looked up; whoever asks again has them then.
    pub(super) fn known_times(&self, places: &[Place]) -> Vec<String> {
        let known = places.iter().filter_map(|&(spot, offset)| {
            let partition = self.partitions.get(&spot)?;
            let position = (partition.id, partition.first_waiting(offset)?);
            let Time::Known(time) = self.times.get(position) else { return None };
            let time = time.map_or_else(|| "null".to_owned(), |time| time.to_string());
            Some(format!("[{},{},{offset},{time}]", spot.0, spot.1))
        });
        known.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_no_offset_of_a_partition_is_left_out() {
        let text = "1.0.5,1.0,1.0.5.6,a.0.5,-1.0.5,2.7.-1,,9.99999999999.1";
        assert_eq!(read_places(text), [((1, 0), 5), ((2, 7), -1)]);
    }

    #[test]
    fn so_many_are_looked_at_and_no_more() {
        let text = vec!["1.0.5"; PLACES_MAX + 1].join(",");
        assert_eq!(read_places(&text).len(), PLACES_MAX);
    }
}
