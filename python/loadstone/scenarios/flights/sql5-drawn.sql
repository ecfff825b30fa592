select origin_state, dest_state, count(*) as cnt, avg(airtime) as atime
from flights
where distance < :distance
group by origin_state, dest_state
